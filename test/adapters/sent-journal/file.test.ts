import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSendMarkFile, readBootId } from '../../../src/adapters/sent-journal/file.ts'

async function withFile(body: (path: string) => void | Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-marks-'))
  try {
    await body(join(folder, 'marks'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A process that marks these calls and dies; with a minus it takes one back. */
function leave(path: string, boot: string | null, ...marks: string[]): void {
  using file = openSendMarkFile(path, boot)
  file.begin()
  for (const mark of marks) {
    if (mark.startsWith('-')) file.retract(mark.slice(1))
    else file.set(mark)
  }
}

test('what a process marked is known to the next one, and what it took back is not', () =>
  withFile((path) => {
    leave(path, 'boot-1', 'sent', 'refused', '-refused', 'waited', '-waited', 'waited')
    using file = openSendMarkFile(path, 'boot-1')
    assert.deepEqual(
      ['sent', 'refused', 'waited', 'never'].map((call) => file.mayHaveLeft(call)),
      [true, false, true, false],
    )
    file.begin()
    using later = openSendMarkFile(path, 'boot-1')
    assert.equal(later.mayHaveLeft('sent'), false)
  }))

test('without a file, or after another start of the machine, every call may have left', () =>
  withFile((path) => {
    using none = openSendMarkFile(path, 'boot-1')
    assert.equal(none.mayHaveLeft('any'), true)
    leave(path, 'boot-1', 'sent')
    using other = openSendMarkFile(path, 'boot-2')
    assert.equal(other.mayHaveLeft('never'), true)
    leave(path, null, 'sent')
    using unknown = openSendMarkFile(path, null)
    assert.equal(unknown.mayHaveLeft('never'), true)
  }))

test('the file stays small and keeps what is under way', () =>
  withFile(async (path) => {
    using file = openSendMarkFile(path, 'boot-1')
    file.begin()
    file.set('long')
    for (let count = 0; count < 60_000; count++) {
      file.set(`call-${String(count).padStart(36, '0')}`)
      file.forget(`call-${String(count).padStart(36, '0')}`)
    }
    assert.ok((await stat(path)).size < 1_100_000)
    using next = openSendMarkFile(path, 'boot-1')
    assert.equal(next.mayHaveLeft('long'), true)
  }))

test('where the machine does not name its starts, nothing is believed', () => {
  assert.equal(readBootId('/nowhere/boot_id'), null)
})
