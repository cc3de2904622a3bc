import java.nio.file.*;
import java.util.*;
import org.opensearch.common.settings.Settings;
import org.opensearch.common.xcontent.json.JsonXContent;
import org.opensearch.core.xcontent.*;
import org.opensearch.painless.PainlessScriptEngine;
import org.opensearch.painless.spi.Allowlist;
import org.opensearch.script.ScriptContext;

/** Scores of comma-separated rows by OpenSearch's Painless: `PainlessScore ROWS NAMES SCRIPT...`, from doc values and a table. */
public class PainlessScore {
    public abstract static class Scoring {
        public static final String[] PARAMETERS = {"params", "doc"};

        public abstract double execute(Map<String, Object> params, Map<String, Object> doc);

        public interface Factory {
            Scoring newInstance();
        }

        public static final ScriptContext<Factory> CONTEXT = new ScriptContext<>("scoring", Factory.class);
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Map<ScriptContext<?>, List<Allowlist>> contexts = new HashMap<>();
        contexts.put(Scoring.CONTEXT, Allowlist.BASE_ALLOWLISTS);
        PainlessScriptEngine engine = new PainlessScriptEngine(Settings.EMPTY, contexts);
        List<String> rows = Files.readAllLines(Path.of(args[0]));
        List<String> names = Files.readAllLines(Path.of(args[1]));
        for (int m = 2; m < args.length; m++) {
            XContentParser parser = JsonXContent.jsonXContent.createParser(
                NamedXContentRegistry.EMPTY, DeprecationHandler.THROW_UNSUPPORTED_OPERATION, Files.readString(Path.of(args[m])));
            Map<String, Object> script = (Map<String, Object>) parser.map().get("script");
            Map<String, Object> params = (Map<String, Object>) script.get("params");
            Scoring.Factory factory = engine.compile("s", (String) script.get("source"), Scoring.CONTEXT, Map.of());
            StringBuilder out = new StringBuilder();
            for (int i = 0; i < rows.size(); i++) {
                String[] values = rows.get(i).split(",");
                Map<String, Object> doc = new HashMap<>();
                List<Object> row = new ArrayList<>();
                for (int k = 0; k < values.length; k++) {
                    Object value = values[k].equals("nan") ? null : Double.valueOf(values[k]);
                    doc.put(names.get(k), value == null ? Map.of() : Map.of("value", value));
                    row.add(value);
                }
                double score = factory.newInstance().execute(params, doc);
                Map<String, Object> logged = new HashMap<>(params);
                logged.put("table", Map.of("d" + i, row));
                logged.put("key", "id");
                double again = factory.newInstance().execute(logged, Map.of("id", Map.of("value", "d" + i)));
                if (Double.compare(score, again) != 0) throw new IllegalStateException("a table gives another score");
                out.append(score).append('\n');
            }
            Files.writeString(Path.of(args[m] + ".scores"), out.toString());
        }
    }
}
