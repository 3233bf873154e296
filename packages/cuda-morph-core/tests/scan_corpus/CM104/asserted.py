class TestIt:
    def test(self, x, device, name):
        self.assertEqual(x.device.type, "cuda")  # >> CM104
        self.assertIn("cuda", str(device))  # >> CM104
        self.assertEqual(name, "cuda")
        self.assertEqual()
