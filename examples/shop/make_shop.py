"""A made-up shop for the tutorial: index 400 products in OpenSearch or Elasticsearch, and write a Quepid export.

    python examples/shop/make_shop.py http://127.0.0.1:9200 shop.csv

The products, the searches and the ratings are made by this program, with a fixed seed. A product is rated 3 if its kind
and all other words of the search fit, and less for each word that does not fit; one rating in ten is one grade off.
People also prefer what others liked: a product with few stars loses a grade.
"""

from __future__ import annotations

import json
import random
import sys
import urllib.request

KINDS = ("shoes", "jacket", "hat", "backpack", "tent", "lamp", "bottle", "gloves")
COLOURS = ("red", "blue", "green", "black", "white")
USES = ("running", "hiking", "winter", "travel", "climbing", "city")
BRANDS = ("Alto", "Brevo", "Corda", "Dunar", "Elva")
MAPPING = {
    "settings": {"number_of_shards": 1, "number_of_replicas": 0},
    "mappings": {
        "properties": {
            "title": {"type": "text"},
            "description": {"type": "text"},
            "brand": {"type": "keyword"},
            "price": {"type": "float"},
            "stars": {"type": "float"},
            "sold": {"type": "integer"},
            "released": {"type": "date"},
        }
    },
}


def products() -> dict[str, dict[str, object]]:
    """The products by their ids."""
    rng = random.Random(7)
    found: dict[str, dict[str, object]] = {}
    for number in range(400):
        kind, colour, use, brand = (rng.choice(words) for words in (KINDS, COLOURS, USES, BRANDS))
        others = rng.sample([*KINDS, *COLOURS, *USES], 6)
        stars = round(rng.uniform(1, 5), 1)
        found[f"p{number:03}"] = {
            "title": f"{brand} {colour} {kind}" + f" for {use}" * (number % 3 > 0),
            "description": f"{kind} for {use}. Goes well with {' '.join(others[:3])}, and is also liked by buyers of "
            f"{' '.join(others[3:])}.",
            "brand": brand,
            "price": round(rng.uniform(5, 300), 2),
            "stars": stars,
            "sold": int(rng.expovariate(1 / 200)),
            "released": f"{rng.randint(2015, 2024)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        }
    return found


def ratings(shop: dict[str, dict[str, object]]) -> list[tuple[str, str, int]]:
    """Ratings of the products that share a word with each of eighty searches, at most 20 each."""
    rng = random.Random(11)
    searches = sorted({f"{rng.choice(COLOURS)} {rng.choice(KINDS)}" for _ in range(50)})
    searches += sorted({f"{rng.choice(KINDS)} {rng.choice(USES)}" for _ in range(70)})
    rows = []
    for search in searches:
        words = set(search.split())
        alike = {name: words & set(str(own["title"]).split()) for name, own in shop.items()}
        some = sorted(alike, key=lambda name: (-len(alike[name]), rng.random()))[:20]
        for name in rng.sample(some, len(some)):
            grade = 3 * (len(alike[name]) / len(words)) ** 2 - (float(str(shop[name]["stars"])) < 3)
            grade += rng.choice((-1, 1)) * (rng.random() < 0.1)
            rows.append((search, name, min(3, max(0, round(grade)))))
    return rows


def send(method: str, url: str, body: str, kind: str = "application/json") -> None:
    """Send a request."""
    request = urllib.request.Request(url, data=body.encode(), method=method, headers={"Content-Type": kind})
    urllib.request.urlopen(request, timeout=120).read()


def main(url: str, export: str) -> None:
    """Index the products, and write the export."""
    shop = products()
    send("PUT", f"{url}/shop", json.dumps(MAPPING))
    lines = [line for name, own in shop.items() for line in ({"index": {"_id": name}}, own)]
    bulk = "\n".join(map(json.dumps, lines)) + "\n"
    send("POST", f"{url}/shop/_bulk?refresh=true", bulk, "application/x-ndjson")
    with open(export, "w", encoding="utf-8") as stream:
        stream.write("query,docid,rating\n")
        stream.writelines(f"{search},{name},{grade}\n" for search, name, grade in ratings(shop))
    print(f"{len(shop)} products are in the index shop, and {export} has ratings of them")


if __name__ == "__main__":
    main(*sys.argv[1:3])
