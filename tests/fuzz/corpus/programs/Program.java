// Ada
public class P { public static void main(String[] a) { String s = "Ada"; } }
