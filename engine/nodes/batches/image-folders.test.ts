import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import sharp from 'sharp'
import type { InputFile, NodeContext } from '../../node/node-context.ts'
import { elementCount, Tensor } from '../../tensor/tensor.ts'
import { loadImageDataSetFromFolder } from './image-folders.ts'

/** A context whose input folder can be enumerated. */
function contextOf(files: Readonly<Record<string, InputFile>>): NodeContext {
  const list = (folder: string) => Object.keys(files).filter((name) => name.startsWith(`${folder}/`))
  return {
    allocate: (shape: readonly number[]) =>
      new Tensor(shape, new Float32Array(new SharedArrayBuffer(elementCount(shape) * 4))),
    checkpoint() {},
    reserve: async () => () => {},
    maxImagePixels: 10_000,
    files: { find: (name: string) => files[name] ?? null, list },
  } as unknown as NodeContext
}

test('the pictures of a folder come in the order of their names, other files left out', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-folder-'))
  try {
    const files: Record<string, InputFile> = {
      'set/notes.txt': { path: '', hash: 'n' },
      'x.png': { path: '', hash: 'x' },
    }
    for (const [name, width] of [
      ['b.PNG', 3],
      ['a.jpg', 2],
      ['c.webp', 4],
    ] as const) {
      const path = join(folder, name)
      await sharp({ create: { width, height: 1, channels: 3, background: '#ff0000' } }).toFile(path)
      files[`set/${name}`] = { path, hash: name }
    }
    const context = contextOf(files)
    const { outputs } = await loadImageDataSetFromFolder.run({ folder: 'set' }, context)
    const [images] = outputs as unknown as Tensor[][]
    assert.deepEqual(
      images.map(({ shape }) => shape),
      [2, 3, 4].map((width) => [1, 1, width, 3]),
    )
    const changeValue = loadImageDataSetFromFolder.changeValue({ folder: 'set' }, context)
    assert.equal(changeValue, 'set/a.jpg a.jpg\nset/b.PNG b.PNG\nset/c.webp c.webp')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a folder without pictures fails by name', async () => {
  const running = async () => loadImageDataSetFromFolder.run({ folder: 'none' }, contextOf({}))
  await assert.rejects(running, /No images found in the input folder: none/)
})
