import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { diskFileOps } from '../fs/file-ops.ts'
import { createParts } from './parts.ts'

const MIB = 1024 * 1024

test('memory that waits for the next part counts, and makes room for parts of another size', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-parts-'))
  const parts = createParts({ directory, memoryBytes: 48 * MIB, files: diskFileOps })
  async function fill(sizeBytes: number) {
    const builder = parts.begin(sizeBytes)
    for (let left = sizeBytes; left > 0; ) left -= await builder.write(Buffer.alloc(Math.min(MIB, left)))
    return builder.finish()
  }
  for (const sizeBytes of [8 * MIB, 16 * MIB, 32 * MIB, 8 * MIB]) {
    const filled = [await fill(sizeBytes), await fill(sizeBytes), await fill(sizeBytes)]
    assert.ok(parts.heldBytes <= 48 * MIB, `${parts.heldBytes}`)
    for (const part of filled) await part.free()
    assert.ok(parts.heldBytes <= 48 * MIB, `${parts.heldBytes} while idle`)
  }
  const one = await fill(32 * MIB)
  assert.deepEqual(await readdir(directory), [], 'what is idle takes no room from what is needed')
  await one.free()
  await rm(directory, { recursive: true })
})
