import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of the fabric8 client: list, watch, create, patch, delete. */
@Timeout(240)
class LifeTest {
  static final String NAMESPACE = "java-" + UUID.randomUUID().toString().substring(0, 8);
  static KubernetesClient client;

  @BeforeAll
  static void connect() {
    client = new KubernetesClientBuilder().build();
    client.namespaces().resource(
        new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build()).create();
  }

  @AfterAll
  static void close() {
    client.namespaces().withName(NAMESPACE).delete();
    client.close();
  }

  static ConfigMap map(String name, String value) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).withNamespace(NAMESPACE).endMetadata()
        .withData(Map.of("k", value)).build();
  }

  @Test
  void aConfigMapLives() {
    var maps = client.configMaps().inNamespace(NAMESPACE);
    assertNotNull(maps.resource(map("a", "v")).create().getMetadata().getUid());
    assertEquals("v", maps.withName("a").get().getData().get("k"));
    assertEquals(1, maps.withField("metadata.name", "a").list().getItems().size());
    var edited = maps.withName("a").edit(old -> new ConfigMapBuilder(old).addToData("n", "1").build());
    assertEquals(Map.of("k", "v", "n", "1"), edited.getData());
    assertEquals("w", maps.resource(map("a", "w")).update().getData().get("k"));
    maps.withName("a").delete();
    assertNull(maps.withName("a").get());
    var failure = org.junit.jupiter.api.Assertions.assertThrows(KubernetesClientException.class,
        () -> maps.resource(map("A!", "v")).create());
    assertEquals(422, failure.getCode());
  }

  @Test
  void aWatchTellsWhatHappens() throws Exception {
    var maps = client.configMaps().inNamespace(NAMESPACE);
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    try (var watch = maps.withName("b").watch(new Watcher<ConfigMap>() {
      @Override
      public void eventReceived(Action action, ConfigMap object) {
        seen.add(action + " " + object.getMetadata().getName());
      }

      @Override
      public void onClose(WatcherException cause) {}
    })) {
      maps.resource(map("b", "v")).create();
      maps.withName("b").delete();
      assertEquals("ADDED b", seen.poll(60, TimeUnit.SECONDS));
      assertEquals("DELETED b", seen.poll(60, TimeUnit.SECONDS));
    }
  }

  @Test
  void anInformerFollows() throws Exception {
    var maps = client.configMaps().inNamespace(NAMESPACE);
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    try (var informer = maps.withName("c").inform(new ResourceEventHandler<ConfigMap>() {
      @Override
      public void onAdd(ConfigMap object) {
        seen.add("added " + object.getMetadata().getName());
      }

      @Override
      public void onUpdate(ConfigMap before, ConfigMap after) {
        seen.add("updated " + after.getData().get("k"));
      }

      @Override
      public void onDelete(ConfigMap object, boolean unknown) {
        seen.add("deleted " + object.getMetadata().getName());
      }
    })) {
      maps.resource(map("c", "v")).create();
      maps.resource(map("c", "w")).update();
      maps.withName("c").delete();
      for (var expected : new String[] {"added c", "updated w", "deleted c"}) {
        assertEquals(expected, seen.poll(60, TimeUnit.SECONDS));
      }
    }
  }
}
