package pintle.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A server lives as long as what asks for it: a test, or the tests of a class. */
class PintleExtensionTest {
  @Nested
  @ExtendWith(PintleExtension.class)
  class OfATest {
    @RepeatedTest(2)
    void theServerIsTheTestsOwn(KubernetesClient client) {
      var shop = new NamespaceBuilder().withNewMetadata().withName("shop").endMetadata().build();
      assertNotNull(client.resource(shop).create().getMetadata().getUid());
    }
  }

  @Nested
  class OfAClass {
    @RegisterExtension static final PintleExtension EXTENSION = new PintleExtension("--emulated-version=1.35");
    static String shared;

    @BeforeAll
    static void start(Pintle pintle) {
      shared = pintle.url();
    }

    @RepeatedTest(2)
    void theServerIsShared(Pintle pintle) {
      assertEquals(shared, pintle.url());
    }

    @Test
    void flagsArePassed(KubernetesClient client) {
      assertTrue(client.raw("/version").contains("\"emulationMinor\": \"35\""));
    }

    @Test
    void otherExtensionsHaveOtherServers() {
      try (Pintle other = Pintle.start()) {
        assertNotEquals(shared, other.url());
      }
    }

    @AfterAll
    static void theServerIsThere() {
      assertFalse(PintleTest.refusesConnections(shared));
    }
  }

  @AfterAll
  static void theSharedServerHasEnded() {
    assertTrue(PintleTest.refusesConnections(OfAClass.shared));
  }
}
