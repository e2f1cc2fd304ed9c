"""From numbers to what people look at: parts that reports share, and how reports are shown."""
