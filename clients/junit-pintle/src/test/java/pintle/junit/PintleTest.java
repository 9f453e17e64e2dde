package pintle.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** No server outlives its {@code close}, or its process. */
@Timeout(120)
class PintleTest {
  @Test
  void serversStartInParallel() {
    List<Pintle> servers = Stream.generate(() -> 0).limit(4).parallel().map(each -> Pintle.start()).toList();
    assertEquals(4, servers.stream().map(Pintle::url).distinct().count());
    for (Pintle server : servers) {
      server.close();
      assertFalse(Files.exists(server.kubeconfig()));
      assertTrue(refusesConnections(server.url()));
    }
  }

  @Test
  void aServerEndsWithAProcessThatIsKilled() throws Exception {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    Process victim = new ProcessBuilder(java, "-cp", classes, Victim.class.getName()).start();
    String url = victim.inputReader().readLine();
    assertFalse(refusesConnections(url));
    ProcessHandle server = victim.children().findFirst().orElseThrow();
    victim.destroyForcibly();
    server.onExit().get();
    assertTrue(refusesConnections(url));
  }

  @Test
  void aWrongFlagIsAnError() {
    assertThrows(IllegalStateException.class, () -> Pintle.start("--nonsense"));
  }

  static boolean refusesConnections(String url) {
    URI address = URI.create(url);
    try (Socket socket = new Socket(address.getHost(), address.getPort())) {
      return false;
    } catch (IOException refused) {
      return true;
    }
  }
}
