import java.nio.file.*;
import java.util.*;
import org.apache.solr.client.solrj.SolrQuery;
import org.apache.solr.client.solrj.embedded.EmbeddedSolrServer;
import org.apache.solr.common.*;
import org.apache.solr.core.SolrCore;
import org.apache.solr.ltr.model.LTRScoringModel;
import org.apache.solr.ltr.store.rest.*;
import org.noggit.ObjectBuilder;

/**
 * Solr in this process: `SolrRerank HOME index DOCUMENTS`, `HOME log QUERIES` writes the
 * logged features of the first documents of each query, `HOME rerank QUERIES MODEL...` their order and scores by a model.
 * Documents and queries are lines with fields between tabs; HOME holds solr.xml, features.json and the core `documents`.
 */
public class SolrRerank {
    static final int WINDOW = 200;

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        try (EmbeddedSolrServer solr = new EmbeddedSolrServer(home, "documents")) {
            try (SolrCore core = solr.getCoreContainer().getCore("documents")) {
                if (args[1].equals("index")) index(solr, Path.of(args[2]));
                ManagedFeatureStore features = ManagedFeatureStore.getManagedFeatureStore(core);
                if (features.getFeatureStore("_DEFAULT_").getFeatures().isEmpty())
                    for (Object own : (List<Object>) ObjectBuilder.fromJSON(Files.readString(home.resolve("features.json"))))
                        features.addFeature((Map<String, Object>) own, "_DEFAULT_");
                ManagedModelStore models = ManagedModelStore.getManagedModelStore(core);
                if (args[1].equals("log")) ask(solr, Path.of(args[2]), null, Path.of(args[2] + ".log"));
                for (int m = 3; m < args.length; m++) {
                    Map<String, Object> body = (Map<String, Object>) ObjectBuilder.fromJSON(Files.readString(Path.of(args[m])));
                    LTRScoringModel model = ManagedModelStore.fromLTRScoringModelMap(
                        core.getResourceLoader(), body, features);
                    models.addModel(model);
                    ask(solr, Path.of(args[2]), model.getName(), Path.of(args[m] + ".orders"));
                }
            }
        }
        System.exit(0);
    }

    static void index(EmbeddedSolrServer solr, Path documents) throws Exception {
        for (String line : Files.readAllLines(documents)) {
            String[] fields = line.split("\t", -1);
            SolrInputDocument document = new SolrInputDocument();
            String[] names = {"id", "title", "text", "author"};
            for (int k = 0; k < names.length; k++) document.addField(names[k], fields[k]);
            solr.add(document);
        }
        solr.commit();
    }

    static void ask(EmbeddedSolrServer solr, Path queries, String model, Path target) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(queries)) {
            String[] own = line.split("\t", -1);
            SolrQuery query = new SolrQuery("{!edismax qf='title text' mm=1 v=$words}");
            query.set("words", own[1]);
            query.setRows(WINDOW);
            query.setFields("id", "score", "features:[features efi.query=$words format=dense]");
            if (model != null) {
                query.setFields("id", "score");
                query.set("rq", "{!ltr model=" + model + " reRankDocs=" + WINDOW + " efi.query=$words}");
            }
            for (SolrDocument found : solr.query(query).getResults())
                out.append(own[0]).append('\t').append(found.getFieldValue("id")).append('\t').append(found.getFieldValue("score"))
                    .append('\t').append(model == null ? found.getFieldValue("features") : "").append('\n');
        }
        Files.writeString(target, out.toString());
    }
}
