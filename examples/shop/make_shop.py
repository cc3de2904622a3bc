"""A made-up shop for the tutorial: products for OpenSearch or Elasticsearch, a Quepid export, and ratings of a plan.

    python examples/shop/make_shop.py http://localhost:9200 shop.csv     # index 400 products, write the export
    python examples/shop/make_shop.py rate plan.csv                      # fill in the plan, in place of people

The products, the searches and the ratings are made by this program, with a fixed seed. A product is rated 3 if its kind
and the other word of the search are in its title, and less if a word is not. A product with less than three stars loses
a grade, and one rating in ten is one grade off.
"""

from __future__ import annotations

import csv
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


def searches() -> list[str]:
    """Searches for a kind of products in a colour, and for a use."""
    rng = random.Random(11)
    found = {f"{rng.choice(COLOURS)} {rng.choice(KINDS)}" for _ in range(36)}
    return sorted(found | {f"{rng.choice(KINDS)} {rng.choice(USES)}" for _ in range(44)})


def rating(search: str, name: str, product: dict[str, object]) -> int:
    """The grade, 0 to 3, that a person would give."""
    rng = random.Random(f"{search} {name}")
    words = set(search.split())
    fit = len(words & set(str(product["title"]).split())) / len(words)
    grade = 3 * fit**2 - (float(str(product["stars"])) < 3) + rng.choice((-1, 1)) * (rng.random() < 0.1)
    return min(3, max(0, round(grade)))


def export(shop: dict[str, dict[str, object]], path: str) -> None:
    """Write a Quepid export: twelve rated products for each search, mostly such that share a word with it."""
    rng = random.Random(13)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("query,docid,rating\n")
        for search in searches():
            words = set(search.split())
            alike = {name: len(words & set(str(own["title"]).split())) for name, own in shop.items()}
            some = sorted(alike, key=lambda name: (-alike[name], rng.random()))[:12]
            stream.writelines(f"{search},{name},{rating(search, name, shop[name])}\n" for name in sorted(some))


def rate(path: str) -> None:
    """Fill in the column `grade` of a plan where `judge` is yes."""
    shop = products()
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if row["judge"] == "yes":
            row["grade"] = str(rating(row["topic"], row["document"], shop[row["document"]]))
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def send(method: str, url: str, body: str, kind: str = "application/json") -> None:
    """Send a request."""
    request = urllib.request.Request(url, data=body.encode(), method=method, headers={"Content-Type": kind})
    urllib.request.urlopen(request, timeout=120).read()


def main(where: str, path: str) -> None:
    """Index the products and write the export, or fill in a plan."""
    if where == "rate":
        rate(path)
        return
    shop = products()
    send("PUT", f"{where}/shop", json.dumps(MAPPING))
    lines = [line for name, own in shop.items() for line in ({"index": {"_id": name}}, own)]
    bulk = "\n".join(map(json.dumps, lines)) + "\n"
    send("POST", f"{where}/shop/_bulk?refresh=true", bulk, "application/x-ndjson")
    export(shop, path)
    print(f"{len(shop)} products are in the index shop, and {path} has ratings of some")


if __name__ == "__main__":
    main(*sys.argv[1:3])
