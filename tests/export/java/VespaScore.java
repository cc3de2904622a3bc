import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.*;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;

/** Scores of comma-separated rows by Vespa's own evaluator of expressions: `VespaScore ROWS NAMES PROFILE...`. */
public class VespaScore {
    public static void main(String[] args) throws Exception {
        List<String> rows = Files.readAllLines(Path.of(args[0]));
        List<String> names = Files.readAllLines(Path.of(args[1]));
        Pattern function = Pattern.compile(
            "^    function (\\w+)\\(\\) \\{\n        expression \\{\n(.*?)\n        \\}$", Pattern.MULTILINE | Pattern.DOTALL);
        for (int m = 2; m < args.length; m++) {
            Matcher found = function.matcher(Files.readString(Path.of(args[m])));
            Map<String, RankingExpression> functions = new LinkedHashMap<>();
            String last = "";
            while (found.find()) {
                last = found.group(1);
                functions.put(last, new RankingExpression(found.group(2)));
            }
            StringBuilder out = new StringBuilder();
            for (String row : rows) {
                String[] values = row.split(",");
                MapContext context = new MapContext();
                for (int k = 0; k < values.length; k++) {
                    double value = values[k].equals("nan") ? Double.NaN : Double.parseDouble(values[k]);
                    context.put(names.get(k), new DoubleValue(value));
                }
                for (Map.Entry<String, RankingExpression> own : functions.entrySet())
                    context.put(own.getKey(), own.getValue().evaluate(context));
                out.append(context.get(last).asDouble()).append('\n');
            }
            Files.writeString(Path.of(args[m] + ".scores"), out.toString());
        }
    }
}
