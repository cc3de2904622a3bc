import java.nio.file.*;
import java.util.*;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.search.*;
import org.apache.lucene.search.similarities.*;
import org.apache.lucene.store.*;

/** Lucene's retrieval functions over documents that were analysed already: lines "id TAB terms", and queries alike. */
public class LuceneRuns {
  /** cf/|C|, where Lucene's own adds one to both. */
  static final class Share implements LMSimilarity.CollectionModel {
    public double computeProbability(BasicStats stats) {
      return (double) stats.getTotalTermFreq() / stats.getNumberOfFieldTokens();
    }
    public String getName() { return "share"; }
  }

  public static void main(String[] files) throws Exception {
    Map<String, Similarity> functions = new LinkedHashMap<>();
    functions.put("bm25", new BM25Similarity(1.2f, 0.75f));
    functions.put("tfidf", new ClassicSimilarity());
    functions.put("dirichlet", new LMDirichletSimilarity(new Share(), 2500f));
    functions.put("jelinek-mercer", new LMJelinekMercerSimilarity(new Share(), 0.4f));
    StringBuilder out = new StringBuilder();
    for (Map.Entry<String, Similarity> function : functions.entrySet()) {
      Directory place = new ByteBuffersDirectory();
      IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setSimilarity(function.getValue());
      try (IndexWriter writer = new IndexWriter(place, config)) {
        for (String line : Files.readAllLines(Paths.get(files[0]))) {
          String[] parts = line.split("\t", -1);
          Document document = new Document();
          document.add(new StoredField("id", parts[0]));
          document.add(new TextField("text", parts[1], Field.Store.NO));
          writer.addDocument(document);
        }
        writer.forceMerge(1);
      }
      try (IndexReader reader = DirectoryReader.open(place)) {
        IndexSearcher searcher = new IndexSearcher(reader);
        searcher.setSimilarity(function.getValue());
        for (String line : Files.readAllLines(Paths.get(files[1]))) {
          String[] parts = line.split("\t", -1);
          Map<String, Integer> counts = new LinkedHashMap<>();
          for (String word : parts[1].split(" ")) if (!word.isEmpty()) counts.merge(word, 1, Integer::sum);
          BooleanQuery.Builder query = new BooleanQuery.Builder();
          for (Map.Entry<String, Integer> word : counts.entrySet())
            query.add(new BoostQuery(new TermQuery(new Term("text", word.getKey())), word.getValue()),
                BooleanClause.Occur.SHOULD);
          for (ScoreDoc hit : searcher.search(query.build(), 1000).scoreDocs)
            out.append(function.getKey()).append('\t').append(parts[0]).append('\t')
                .append(reader.document(hit.doc).get("id")).append('\t').append(hit.score).append('\n');
        }
      }
    }
    System.out.print(out);
  }
}
