import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.net.httpserver.HttpServer;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.ServiceAccountBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.ContainerResource;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of the fabric8 client with pods: exec, logs, ports. */
@Timeout(240)
class StreamsTest {
  static final String NAMESPACE = "java-" + UUID.randomUUID().toString().substring(0, 8);
  static final long PATIENCE_SECONDS = 120;
  static KubernetesClient client;

  /** A pod on a kubelet before v1.36, and one on a kubelet of v1.36. */
  @BeforeAll
  static void connect() {
    var kubelets = System.getenv().getOrDefault("PINTLE_TEST_KUBELETS", "").split(" ");
    assumeTrue(kubelets.length == 2, "there are no kubelets (see ../with-kubelet)");
    client = new KubernetesClientBuilder().build();
    client.namespaces().resource(
        new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
    client.serviceAccounts().inNamespace(NAMESPACE).resource(
        new ServiceAccountBuilder().withNewMetadata().withName("a").endMetadata().build()).create();
    pod("old", Integer.parseInt(kubelets[0]));
    pod("new", Integer.parseInt(kubelets[1]), "ExtendWebSocketsToKubelet");
  }

  static void pod(String name, int port, String... features) {
    var node = new NodeBuilder().withNewMetadata().withName(NAMESPACE + "-" + name).endMetadata();
    client.nodes().resource(node.build()).create();
    client.nodes().withName(NAMESPACE + "-" + name).editStatus(made -> new NodeBuilder(made).withNewStatus()
        .addNewAddress().withType("InternalIP").withAddress("127.0.0.1").endAddress()
        .withNewDaemonEndpoints().withNewKubeletEndpoint().withPort(port).endKubeletEndpoint().endDaemonEndpoints()
        .addToAdditionalProperties("declaredFeatures", List.of(features)).endStatus().build());
    client.pods().inNamespace(NAMESPACE).resource(new PodBuilder().withNewMetadata().withName(name).endMetadata()
        .withNewSpec().withNodeName(NAMESPACE + "-" + name).withServiceAccountName("a")
        .addNewContainer().withName("c").withImage("i").endContainer().endSpec().build()).create();
  }

  @AfterAll
  static void close() {
    if (client == null) {
      return;
    }
    client.namespaces().withName(NAMESPACE).delete();
    client.nodes().withName(NAMESPACE + "-old").delete();
    client.nodes().withName(NAMESPACE + "-new").delete();
    client.close();
  }

  static ContainerResource container(String pod) {
    return client.pods().inNamespace(NAMESPACE).withName(pod).inContainer("c");
  }

  @ParameterizedTest
  @ValueSource(strings = {"old", "new"})
  void commandsEndAsTheyEnd(String pod) throws Exception {
    for (var end : Map.of(0, "true", 1, "exit 1", 137, "kill -9 $$").entrySet()) {
      var out = new ByteArrayOutputStream();
      var err = new ByteArrayOutputStream();
      try (var watch = container(pod).writingOutput(out).writingError(err)
          .exec("sh", "-c", "echo out; echo err >&2; " + end.getValue())) {
        assertEquals(end.getKey(), watch.exitCode().get(PATIENCE_SECONDS, TimeUnit.SECONDS));
      }
      assertEquals("out\nerr\n", out.toString() + err);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"old", "new"})
  void inputArrives(String pod) throws Exception {
    var out = new ByteArrayOutputStream();
    try (var watch = container(pod).readingInput(new ByteArrayInputStream("x\n".getBytes())).writingOutput(out)
        .exec("head", "-n1")) {
      assertEquals(0, watch.exitCode().get(PATIENCE_SECONDS, TimeUnit.SECONDS));
    }
    assertEquals("x\n", out.toString());
  }

  @ParameterizedTest
  @ValueSource(strings = {"old", "new"})
  void manyBytesGoBothWays(String pod) throws Exception {
    var sent = new byte[Integer.parseInt(System.getenv().getOrDefault("PINTLE_TEST_BYTES", "8388608"))];
    new Random().nextBytes(sent);
    var digest = MessageDigest.getInstance("SHA-256");
    // This client does not end the input, so the command has to know its length.
    try (var watch = container(pod).readingInput(new ByteArrayInputStream(sent))
        .writingOutput(new DigestOutputStream(OutputStream.nullOutputStream(), digest))
        .exec("head", "-c", String.valueOf(sent.length))) {
      assertEquals(0, watch.exitCode().get(PATIENCE_SECONDS, TimeUnit.SECONDS));
    }
    assertArrayEquals(MessageDigest.getInstance("SHA-256").digest(sent), digest.digest());
  }

  @ParameterizedTest
  @ValueSource(strings = {"old", "new"})
  void logsAreRead(String pod) {
    assertEquals(10, container(pod).getLog().lines().count());
  }

  @ParameterizedTest
  @ValueSource(strings = {"old", "new"})
  void portsAreForwarded(String pod) throws Exception {
    var site = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    site.createContext("/x", exchange -> {
      exchange.sendResponseHeaders(200, 3);
      exchange.getResponseBody().write("yes".getBytes());
      exchange.close();
    });
    site.start();
    try (var forward = client.pods().inNamespace(NAMESPACE).withName(pod).portForward(site.getAddress().getPort())) {
      var url = URI.create("http://127.0.0.1:" + forward.getLocalPort() + "/x").toURL();
      try (var answer = url.openStream()) {
        assertEquals("yes", new String(answer.readAllBytes()));
      }
    } finally {
      site.stop(0);
    }
  }
}
