import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ZipFile, zipStream } from './zip-stream.ts'

function file(name: string, text: string): ZipFile {
  const bytes = Buffer.from(text)
  return {
    ...{ name, sizeBytes: bytes.byteLength, modifiedAt: new Date('2026-01-02T03:04:06Z') },
    open: async () =>
      (async function* () {
        yield bytes.subarray(0, 2)
        yield bytes.subarray(2)
      })(),
  }
}

async function collect(files: readonly ZipFile[]): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of zipStream(files)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('an archive that another program reads, with names beyond ASCII and an empty file', async (context) => {
  const bytes = await collect([file('a.txt', 'hello'), file('söhne/ü.txt', 'x'.repeat(70_000)), file('empty', '')])
  const folder = mkdtempSync(join(tmpdir(), 'zip-'))
  try {
    writeFileSync(join(folder, 'a.zip'), bytes)
    const script =
      'import sys,zipfile\nz=zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n' +
      'print([(i.filename,i.file_size,i.date_time) for i in z.infolist()])\nprint(z.read("a.txt"))'
    const told = execFileSync('python3', ['-c', script, join(folder, 'a.zip')], { encoding: 'utf8' })
    assert.match(told, /\('a\.txt', 5, \(2026, 1, 2, 3, 4, 6\)\), \('söhne\/ü\.txt', 70000/)
    assert.match(told, /b'hello'/)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    context.skip('there is no python3 to read the archive')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a file that has other than its promised bytes breaks the archive off', async () => {
  await assert.rejects(collect([{ ...file('a', 'abc'), sizeBytes: 2 }]), /3 bytes instead of 2/)
})
