import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { tryLock } from '../../../lib/files/file-lock.ts'
import { exportEvents } from './export-events.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'atelier-events-'))
after(() => rmSync(folder, { recursive: true, force: true }))

// Numbers have gaps, and a text may hold more bytes than letters.
const EVENTS = [3, 4, 9, 10, 12].map((seq) => ({ specversion: '1.0', id: `é${seq}`, sequence: String(seq), data: {} }))
const WHOLE = EVENTS.map((event) => `${JSON.stringify(event)}\n`).join('')

async function page(from: number) {
  const found = EVENTS.filter(({ sequence }) => Number(sequence) > from)
  const events = found.slice(0, 2)
  return { events, next: Number(events.at(-1)?.sequence ?? from), last: found.length <= 2 }
}

test('an export that was killed after any byte goes on so that every event is in the file once', async () => {
  const file = path.join(folder, 'cut.jsonl')
  const bytes = Buffer.from(WHOLE)
  for (let length = 0; length <= bytes.length; length += 1) {
    writeFileSync(file, bytes.subarray(0, length))
    await exportEvents(file, page)
    assert.equal(readFileSync(file, 'utf8'), WHOLE, `after ${length} bytes`)
  }
  assert.equal(await exportEvents(file, page), 0)
})

test('a file of something else stays as it is', async () => {
  const file = path.join(folder, 'notes.txt')
  for (const text of ['my notes', 'my notes\n', '{"a": 1}\n', `${WHOLE}and a note`, 'x'.repeat(100_000)]) {
    writeFileSync(file, text)
    await assert.rejects(exportEvents(file, page), /does not end with a usage event/)
    assert.equal(readFileSync(file, 'utf8'), text)
  }
})

test('two exports into one file do not run at the same time', async () => {
  const file = path.join(folder, 'shared.jsonl')
  {
    using lock = tryLock(`${file}.lock`)
    assert.ok(lock !== null)
    await assert.rejects(exportEvents(file, page), /another export writes/)
  }
  assert.equal(await exportEvents(file, page), EVENTS.length)
})
