import ciir.umass.edu.learning.DenseDataPoint;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;
import java.nio.file.*;
import java.util.*;

/** Scores of comma-separated rows by models of RankLib: `RankLibScore ROWS MODEL...` writes MODEL.scores. */
public class RankLibScore {
    public static void main(String[] args) throws Exception {
        List<String> rows = Files.readAllLines(Path.of(args[0]));
        for (int m = 1; m < args.length; m++) {
            String text = Files.readString(Path.of(args[m]));
            Ranker ranker;
            try {  // RankyMcRankFace, as the plugin embeds it, has only this name for it
                ranker = (Ranker) RankerFactory.class.getMethod("loadRankerFromString", String.class)
                    .invoke(new RankerFactory(), text);
            } catch (NoSuchMethodException e) {
                ranker = new RankerFactory().loadRankerFromFile(args[m]);
            }
            StringBuilder out = new StringBuilder();
            for (String row : rows) {
                String[] values = row.split(",");
                StringBuilder line = new StringBuilder("0 qid:1");
                for (int k = 0; k < values.length; k++) line.append(' ').append(k + 1).append(':').append(values[k]);
                out.append(ranker.eval(new DenseDataPoint(line.toString()))).append('\n');
            }
            Files.writeString(Path.of(args[m] + ".scores"), out.toString());
        }
    }
}
