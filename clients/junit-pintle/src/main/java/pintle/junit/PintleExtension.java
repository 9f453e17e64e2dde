package pintle.junit;

import io.fabric8.kubernetes.client.KubernetesClient;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests a server and its client as parameters.
 *
 * <p>The server starts when a parameter first asks for it. One that a constructor or {@code @BeforeAll} asks for is
 * shared by the tests of the class; one that only tests or {@code @BeforeEach} ask for is each test's own.
 */
public final class PintleExtension implements ParameterResolver {
  private static final Namespace NAMESPACE = Namespace.create(PintleExtension.class);

  private final String[] flags;

  /** For {@code @ExtendWith}. */
  public PintleExtension() {
    this(new String[0]);
  }

  /** For {@code @RegisterExtension}: the flags are further ones of {@code pintle serve}. */
  public PintleExtension(String... flags) {
    this.flags = flags;
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return type == Pintle.class || type == KubernetesClient.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    // JUnit closes what a store holds when the context of the store ends.
    Pintle pintle =
        context.getStore(NAMESPACE).getOrComputeIfAbsent(this, key -> Pintle.start(flags), Pintle.class);
    return parameter.getParameter().getType() == Pintle.class ? pintle : pintle.client();
  }
}
