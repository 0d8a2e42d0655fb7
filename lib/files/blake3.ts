/**
 * BLAKE3 with 256 bits, as lower-case hex. The native binding is several times faster; where its binary does not load, the
 * WebAssembly build takes its place, chosen once at start. Hashing is synchronous: hand in chunks of about a mebibyte at most.
 */
import type { IHasher } from 'hash-wasm'

export interface Blake3Hasher {
  /** The chunk may be reused by the caller as soon as this returns. */
  update(chunk: Uint8Array): void
  /** Ends the hasher. */
  digest(): string
}

export interface Blake3 {
  readonly implementation: 'native' | 'wasm'
  createHasher(): Blake3Hasher
  /** Hash of one whole piece. */
  hash(bytes: Uint8Array): string
}

type Native = typeof import('@napi-rs/blake-hash')

interface OpenBlake3Options {
  /** How to load the native binding; a rejection means that this machine has none. */
  readonly loadNative?: () => Promise<Native>
}

const loadInstalled = () => import('@napi-rs/blake-hash')

export async function openBlake3({ loadNative = loadInstalled }: OpenBlake3Options = {}): Promise<Blake3> {
  let native: Native
  try {
    native = await loadNative()
  } catch {
    // Nothing else can be wrong with a bare import, and a slower service beats none.
    return openWasm()
  }
  return fromNative(native)
}

function fromNative({ Blake3Hasher: NativeHasher }: Native): Blake3 {
  const createHasher = (): Blake3Hasher => {
    const hasher = new NativeHasher()
    return {
      update(chunk) {
        hasher.update(toBuffer(chunk))
      },
      digest: () => hasher.digest('hex'),
    }
  }
  return { implementation: 'native', createHasher, hash: (bytes) => hashWhole(createHasher, bytes) }
}

async function openWasm(): Promise<Blake3> {
  const { createBLAKE3 } = await import('hash-wasm')
  const machine = await createBLAKE3()
  const createHasher = () => createWasmHasher(machine)
  return { implementation: 'wasm', createHasher, hash: (bytes) => hashWhole(createHasher, bytes) }
}

// One machine serves all hashers: an instance each would cost memory and could only be made asynchronously. Its state is
// two kilobytes, so putting it back before every chunk is cheap.
function createWasmHasher(machine: IHasher): Blake3Hasher {
  let state = machine.init().save()
  return {
    update(chunk) {
      state = machine.load(state).update(chunk).save()
    },
    digest: () => machine.load(state).digest('hex'),
  }
}

function hashWhole(createHasher: () => Blake3Hasher, bytes: Uint8Array): string {
  const hasher = createHasher()
  hasher.update(bytes)
  return hasher.digest()
}

function toBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}
