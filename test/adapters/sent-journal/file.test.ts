import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSentJournalFile, readBootId } from '../../../src/adapters/sent-journal/file.ts'

async function withFile(body: (path: string) => void | Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-journal-'))
  try {
    await body(join(folder, 'journal'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A process that records these calls and dies; a minus retracts one. */
function leave(path: string, boot: string | null, ...entries: string[]): void {
  using file = openSentJournalFile(path, boot)
  file.dropEarlier()
  for (const entry of entries) {
    if (entry.startsWith('-')) file.retract(entry.slice(1))
    else file.record(entry)
  }
}

test('what a process recorded is known to the next one, and what it retracted is not', () =>
  withFile((path) => {
    leave(path, 'boot-1', 'sent', 'refused', '-refused', 'waited', '-waited', 'waited')
    using file = openSentJournalFile(path, 'boot-1')
    assert.deepEqual(
      ['sent', 'refused', 'waited', 'never'].map((call) => file.mayHaveLeft(call)),
      [true, false, true, false],
    )
    file.dropEarlier()
    using later = openSentJournalFile(path, 'boot-1')
    assert.equal(later.mayHaveLeft('sent'), false)
  }))

test('without a file, or after another boot, every call may have left', () =>
  withFile((path) => {
    using none = openSentJournalFile(path, 'boot-1')
    assert.equal(none.mayHaveLeft('any'), true)
    leave(path, 'boot-1', 'sent')
    using other = openSentJournalFile(path, 'boot-2')
    assert.equal(other.mayHaveLeft('never'), true)
    leave(path, null, 'sent')
    using unknown = openSentJournalFile(path, null)
    assert.equal(unknown.mayHaveLeft('never'), true)
  }))

test('the file stays small and keeps what is under way', () =>
  withFile(async (path) => {
    using file = openSentJournalFile(path, 'boot-1')
    file.dropEarlier()
    file.record('long')
    for (let count = 0; count < 60_000; count++) {
      file.record(`call-${String(count).padStart(36, '0')}`)
      file.forget(`call-${String(count).padStart(36, '0')}`)
    }
    assert.ok((await stat(path)).size < 1_100_000)
    using next = openSentJournalFile(path, 'boot-1')
    assert.equal(next.mayHaveLeft('long'), true)
  }))

test('where the machine does not name its boots, no entry is believed', () => {
  assert.equal(readBootId('/nowhere/boot_id'), null)
})
