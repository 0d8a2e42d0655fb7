/** Bytes that are in memory, for whoever reads a stream of them. */
export async function* inOneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
