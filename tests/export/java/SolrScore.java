import java.nio.file.*;
import java.util.*;
import org.apache.solr.core.SolrResourceLoader;
import org.apache.solr.ltr.feature.*;
import org.apache.solr.ltr.model.LTRScoringModel;
import org.apache.solr.ltr.store.FeatureStore;
import org.apache.solr.ltr.store.rest.*;
import org.noggit.ObjectBuilder;

/** Scores of comma-separated rows by models of Solr's own classes: `SolrScore ROWS NAMES MODEL...`. */
public class SolrScore {
    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        List<String> rows = Files.readAllLines(Path.of(args[0]));
        List<String> names = Files.readAllLines(Path.of(args[1]));
        SolrResourceLoader loader = new SolrResourceLoader(Path.of(args[0]).toAbsolutePath().getParent());
        for (int m = 2; m < args.length; m++) {
            Map<String, Object> map = (Map<String, Object>) ObjectBuilder.fromJSON(Files.readString(Path.of(args[m])));
            List<Feature> features = new ArrayList<>();
            List<org.apache.solr.ltr.norm.Normalizer> norms = new ArrayList<>();
            int[] column = new int[((List<?>) map.get("features")).size()];
            for (Object entry : (List<Object>) map.get("features")) {
                Map<String, Object> own = (Map<String, Object>) entry;
                String name = (String) own.get("name");
                column[features.size()] = names.indexOf(name);
                features.add(new ValueFeature(name, Map.of("value", 1.0)));
                Map<String, Object> norm = (Map<String, Object>) own.get("norm");
                norms.add(norm == null ? org.apache.solr.ltr.norm.IdentityNormalizer.INSTANCE
                    : org.apache.solr.ltr.norm.Normalizer.getInstance(loader, (String) norm.get("class"),
                        new LinkedHashMap<>((Map<String, Object>) norm.get("params"))));
                features.get(features.size() - 1).setIndex(features.size() - 1);
            }
            LTRScoringModel model = LTRScoringModel.getInstance(loader, (String) map.get("class"),
                (String) map.get("name"), features, norms, "store", features, (Map<String, Object>) map.get("params"));
            StringBuilder out = new StringBuilder();
            for (String row : rows) {
                String[] values = row.split(",");
                float[] x = new float[column.length];
                for (int k = 0; k < column.length; k++) x[k] = Float.parseFloat(values[column[k]]);
                model.normalizeFeaturesInPlace(x);
                out.append(model.score(x)).append('\n');
            }
            Files.writeString(Path.of(args[m] + ".scores"), out.toString());
        }
    }
}
