package pintle.junit;

/** A program that starts a server and waits until it is killed. */
final class Victim {
  public static void main(String[] arguments) throws Exception {
    System.out.println(Pintle.start().url());
    System.in.read();
  }
}
