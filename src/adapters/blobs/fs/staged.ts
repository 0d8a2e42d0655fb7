/** Bytes on their way to their final name: in memory, or in a temporary file that is not yet durable. */
import type { BufferPool } from './buffer-pool.ts'
import type { FileOps } from './file-ops.ts'
import type { Received } from './receive.ts'

export interface Staged {
  readonly path: string
  /** The bytes are durable under `path` once this resolves. Asked twice, it works once. */
  sync(): Promise<void>
  /** Frees whatever is still held. Asked twice, it works once. The file is removed unless it has got its final name. */
  release(options: { readonly renamed: boolean }): Promise<void>
}

interface StageDeps {
  readonly files: FileOps
  readonly smallBuffers: BufferPool
  newTemporaryPath(): string
}

export function stage(received: Received, deps: StageDeps): Staged {
  const holder = received.kind === 'memory' ? holdMemory(received, deps) : holdFile(received, deps)
  let synced: Promise<void> | null = null
  let released: Promise<void> | null = null

  async function release(renamed: boolean): Promise<void> {
    // A sync under way still needs the file and the buffer.
    await synced?.catch(() => {})
    await holder.free()
    if (!renamed && holder.isOnDisk()) await deps.files.unlink(holder.path)
  }

  return {
    path: holder.path,
    sync() {
      synced ??= holder.sync()
      return synced
    },
    release({ renamed }) {
      released ??= release(renamed)
      return released
    },
  }
}

interface Holder {
  readonly path: string
  sync(): Promise<void>
  isOnDisk(): boolean
  free(): Promise<void>
}

function holdMemory(
  received: Received & { kind: 'memory' },
  { files, smallBuffers, newTemporaryPath }: StageDeps,
): Holder {
  const path = newTemporaryPath()
  let onDisk = false
  return {
    path,
    async sync() {
      const fd = await files.create(path)
      onDisk = true
      try {
        if (received.sizeBytes > 0) await files.write(fd, received.bytes, { length: received.sizeBytes, position: 0 })
        await files.datasync(fd)
      } finally {
        await files.close(fd)
      }
    },
    isOnDisk: () => onDisk,
    async free() {
      smallBuffers.giveBack(received.buffer)
    },
  }
}

function holdFile({ path, fd }: Received & { kind: 'file' }, { files }: StageDeps): Holder {
  return {
    path,
    sync: () => files.datasync(fd),
    isOnDisk: () => true,
    free: () => files.close(fd),
  }
}
