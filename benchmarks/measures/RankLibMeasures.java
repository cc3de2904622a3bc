import ciir.umass.edu.learning.DataPoint;
import ciir.umass.edu.learning.DenseDataPoint;
import ciir.umass.edu.learning.RankList;
import ciir.umass.edu.metric.MetricScorer;
import ciir.umass.edu.metric.MetricScorerFactory;
import java.io.*;
import java.util.*;

/** Values of RankLib's metrics, one line for each line of grades in ranked order: `RankLibMeasures NDCG@10 MAP`. */
public class RankLibMeasures {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int query = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            query++;
            StringBuilder out = new StringBuilder();
            try {
                List<DataPoint> points = new ArrayList<>();
                for (String grade : line.trim().split(" ")) {
                    if (Double.parseDouble(grade) < 0) throw new IllegalArgumentException("RankLib exits");
                    points.add(new DenseDataPoint(grade + " qid:" + query + " 1:0"));
                }
                for (String name : args) {
                    MetricScorer scorer = new MetricScorerFactory().createScorer(name);
                    out.append(scorer.score(new RankList(points))).append(' ');
                }
            } catch (RuntimeException error) {
                out = new StringBuilder("refused " + error);
            }
            System.out.println(out);
            System.out.flush();
        }
    }
}
