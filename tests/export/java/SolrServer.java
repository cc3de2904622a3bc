import java.nio.file.Path;
import org.apache.solr.client.solrj.embedded.JettyConfig;
import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** Solr over HTTP on a free port of this machine, which it prints: `SolrServer HOME SECONDS`; ends with its input. */
public class SolrServer {
    public static void main(String[] args) throws Exception {
        long seconds = Long.parseLong(args[1]);
        Thread limit = new Thread(() -> {
            try { Thread.sleep(1000 * seconds); } catch (InterruptedException stopped) { return; }
            Runtime.getRuntime().halt(3);
        });
        limit.setDaemon(true);
        limit.start();
        JettySolrRunner server = new JettySolrRunner(
            Path.of(args[0]).toString(), JettyConfig.builder().setContext("/solr").setPort(0).build());
        server.start();
        System.out.println("port " + server.getLocalPort());
        System.out.flush();
        while (System.in.read() >= 0) { }
        server.stop();
        System.exit(0);
    }
}
