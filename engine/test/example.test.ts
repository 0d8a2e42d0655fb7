/** The example program, run exactly as it is written, through the name under which the package exports the engine. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import sharp from 'sharp'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

test('the example makes a picture and ends by itself', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-example-'))
  try {
    const program = path.join(ROOT, 'examples/engine/make-picture.ts')
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, folder])
    assert.deepEqual([stdout, stderr], [`${path.join(folder, 'day_00001_.png')}\n`, ''])
    const { data, info } = await sharp(stdout.trim()).raw().toBuffer({ resolveWithObject: true })
    const pixelAt = (x: number, y: number) => [...data.subarray((y * info.width + x) * 3).subarray(0, 3)]
    assert.deepEqual([info.width, info.height, info.channels], [512, 384, 3])
    assert.deepEqual(pixelAt(0, 0), [0x33, 0x66, 0xcc])
    assert.deepEqual(pixelAt(330, 70), [0xff, 0xcc, 0x00])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
