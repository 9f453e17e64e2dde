package pintle.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** No server outlives its {@code close}, or its process. */
@Timeout(120)
class PintleTest {
  private static final String POLICY =
      "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}";

  @TempDir Path directory;

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

  @Test
  void aServerMayWriteMoreThanAPipeHolds() throws IOException {
    Path policy = Files.writeString(directory.resolve("policy"), POLICY);
    Pintle server = Pintle.start("--audit-policy-file=" + policy, "--audit-log-path=-");
    for (int number = 0; number < 100; number++) {
      ConfigMapBuilder large = new ConfigMapBuilder().withNewMetadata().withName("large-" + number).endMetadata();
      server.client().resource(large.addToData("text", "x".repeat(2048)).build()).inNamespace("default").create();
    }
    assertStops(server);
  }

  @Test
  void linesBeforeTheOneOfAReadyServerAreSkipped() throws IOException {
    assertStops(Pintle.startProgram(script("echo first; echo pintle ready to sail; exec $PINTLE")));
  }

  @Test
  void aServerThatDoesNotSeeTheEndOfThePipeIsStopped() throws IOException {
    assertStops(Pintle.startProgram(script("mkfifo \"$0.pipe\"; exec $PINTLE <>\"$0.pipe\"")));
  }

  @Test
  void aStartThatFailsLeavesNothing() throws IOException {
    // The line of a ready server with a kubeconfig that is not there.
    String line = "(sleep 1; echo pintle ready url=u kubeconfig=/nowhere/k) &";
    String program = script("echo $$ >\"$0.pid\"; export TMPDIR=\"$0.tmp\"\n" + line + "\nexec $PINTLE >/dev/null");
    Path temporary = Files.createDirectory(Path.of(program + ".tmp"));
    assertThrows(UncheckedIOException.class, () -> Pintle.startProgram(program));
    long pid = Long.parseLong(Files.readString(Path.of(program + ".pid")).strip());
    assertTrue(ProcessHandle.of(pid).isEmpty());
    assertEquals(0, temporary.toFile().list().length);
  }

  /** Makes a script in which $PINTLE is the server with its arguments. */
  private String script(String text) throws IOException {
    Path path = directory.resolve("pintle");
    String server = "'" + System.getenv("PINTLE") + "' \"$@\"";
    Files.writeString(path, "#!/bin/sh\n" + text.replace("$PINTLE", server) + "\n");
    assertTrue(path.toFile().setExecutable(true));
    return path.toString();
  }

  /** A server that has to be killed takes ten seconds. */
  private static void assertStops(Pintle server) {
    assertTimeout(Duration.ofSeconds(5), server::close);
    assertFalse(Files.exists(server.kubeconfig()));
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
