package pintle.junit;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A running Kubernetes API server that stores nothing on disk.
 *
 * <p>It ends at {@link #close}, or with this process: it waits for the end of a pipe that only this process holds,
 * and the system closes the pipe even if the process is killed.
 */
public final class Pintle implements AutoCloseable {
  private static final long START_SECONDS_MAX = 60;
  private static final long STOP_SECONDS_MAX = 10;

  /** The line that the server prints when it is ready. */
  private static final Pattern READY = Pattern.compile("pintle ready url=(\\S+) kubeconfig=(.*)");

  private final Process process;
  private final String url;
  private final Path kubeconfig;
  private final KubernetesClient client;

  private Pintle(Process process, Matcher ready) throws IOException {
    this.process = process;
    url = ready.group(1);
    kubeconfig = Path.of(ready.group(2));
    client = new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(Files.readString(kubeconfig))).build();
  }

  /** Starts a server with further flags of {@code pintle serve}. */
  public static Pintle start(String... flags) {
    String program = System.getenv().getOrDefault("PINTLE", "");
    return startProgram(program.isEmpty() ? "pintle" : program, flags);
  }

  static Pintle startProgram(String program, String... flags) {
    List<String> command = new ArrayList<>();
    command.addAll(List.of(program, "serve", "--ephemeral", "--secure-port=0", "--stop-at-eof"));
    command.addAll(List.of(flags));
    ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
    // RUST_LOG=pintle=info shows more of the log.
    builder.environment().putIfAbsent("RUST_LOG", "error");
    Process process;
    try {
      process = builder.start();
    } catch (IOException error) {
      throw new UncheckedIOException("no Pintle: put `pintle` on the PATH, or let PINTLE name it", error);
    }
    try {
      return new Pintle(process, waitUntilReady(process));
    } catch (IOException error) {
      stop(process);
      throw new UncheckedIOException(error);
    } catch (RuntimeException error) {
      stop(process);
      throw error;
    }
  }

  private static Matcher waitUntilReady(Process process) {
    CompletableFuture<Matcher> ready = new CompletableFuture<>();
    Thread reader = new Thread(() -> read(process, ready), "pintle");
    reader.setDaemon(true);
    reader.start();
    Matcher line = ready.completeOnTimeout(null, START_SECONDS_MAX, TimeUnit.SECONDS).join();
    if (line == null) {
      throw new IllegalStateException("pintle does not start; standard error has the reason");
    }
    return line;
  }

  /** Reads what the server prints until it ends, because the server waits when the pipe is full. */
  private static void read(Process process, CompletableFuture<Matcher> ready) {
    try (BufferedReader output = process.inputReader()) {
      String line;
      while (!ready.isDone() && (line = output.readLine()) != null) {
        Matcher matcher = READY.matcher(line);
        if (matcher.matches()) {
          ready.complete(matcher);
        }
      }
      process.getInputStream().transferTo(OutputStream.nullOutputStream());
    } catch (IOException ended) {
      // The server has ended.
    } finally {
      ready.complete(null);
    }
  }

  /** The URL of the server. */
  public String url() {
    return url;
  }

  /** The path of a kubeconfig of an administrator, for other clients and tools. */
  public Path kubeconfig() {
    return kubeconfig;
  }

  /** The client of an administrator; it is closed with the server. */
  public KubernetesClient client() {
    return client;
  }

  /** Stops the server and waits until it has ended. */
  @Override
  public void close() {
    client.close();
    stop(process);
  }

  /** Stops a server and waits until it has ended. */
  private static void stop(Process process) {
    ProcessHandle server = process.toHandle();
    try {
      // The server finishes open requests after the first signal, and ends at once after the second.
      for (int signals = 0; signals < 2; signals++) {
        server.destroy();
        closeInput(process);
        if (process.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
          return;
        }
      }
      process.destroyForcibly().waitFor();
    } catch (InterruptedException interrupted) {
      // The server ends nevertheless: it has the first signal.
      Thread.currentThread().interrupt();
    }
  }

  private static void closeInput(Process process) {
    try {
      process.getOutputStream().close();
    } catch (IOException error) {
      // The server has ended, or ends by the signal.
    }
  }
}
