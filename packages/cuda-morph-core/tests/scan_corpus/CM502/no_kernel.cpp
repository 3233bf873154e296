int add(int x) { return x + 1; }
