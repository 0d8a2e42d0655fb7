import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
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

const held = (id: string) => ({ seq: 1, id, accountId: 'account', owner: 'node', fence: 1 })
const found = (id: string) => ({ ref: held(id), isSent: false })

/** A process that records these calls and dies; a minus retracts one. */
function leave(path: string, boot: string | null, ...entries: string[]): void {
  using file = openSentJournalFile(path, boot)
  file.dropEarlier()
  for (const entry of entries) {
    if (entry.startsWith('-')) file.retract(held(entry.slice(1)))
    else file.record(held(entry))
  }
}

test('what a process recorded is known to the next one, and what it retracted is not', () =>
  withFile((path) => {
    leave(path, 'boot-1', 'sent', 'refused', '-refused', 'waited', '-waited', 'waited')
    using file = openSentJournalFile(path, 'boot-1')
    assert.deepEqual(
      ['sent', 'refused', 'waited', 'never'].map((call) => file.mayHaveLeft(found(call))),
      [true, false, true, false],
    )
    file.dropEarlier()
    using later = openSentJournalFile(path, 'boot-1')
    assert.equal(later.mayHaveLeft(found('sent')), false)
  }))

test('without a file, or after another boot, every call may have left', () =>
  withFile((path) => {
    using none = openSentJournalFile(path, 'boot-1')
    assert.equal(none.mayHaveLeft(found('any')), true)
    leave(path, 'boot-1', 'sent')
    using other = openSentJournalFile(path, 'boot-2')
    assert.equal(other.mayHaveLeft(found('never')), true)
    leave(path, null, 'sent')
    using unknown = openSentJournalFile(path, null)
    assert.equal(unknown.mayHaveLeft(found('never')), true)
  }))

test('the file stays small and keeps what is under way', () =>
  withFile(async (path) => {
    using file = openSentJournalFile(path, 'boot-1')
    file.dropEarlier()
    file.record(held('long'))
    for (let count = 0; count < 60_000; count++) {
      file.record(held(`call-${String(count).padStart(36, '0')}`))
      file.forget(`call-${String(count).padStart(36, '0')}`)
    }
    assert.ok((await stat(path)).size < 1_100_000)
    using next = openSentJournalFile(path, 'boot-1')
    assert.equal(next.mayHaveLeft(found('long')), true)
  }))

test('a file in which earlier calls were not dealt with keeps them, whatever this process sends', () =>
  withFile((path) => {
    leave(path, 'boot-1', 'before')
    using second = openSentJournalFile(path, 'boot-1')
    second.record(held('own'))
    second.retract(held('before'))
    assert.deepEqual([second.mayHaveLeft(found('before')), second.mayHaveLeft(found('own'))], [true, true])
  }))

test('calls that begin together are written together, and each waits for it', () =>
  withFile(async (path) => {
    using file = openSentJournalFile(path, 'boot-1')
    file.dropEarlier()
    const { size } = statSync(path)
    const recording = ['first', 'second'].map((id) => file.record(held(id)))
    assert.equal(statSync(path).size, size)
    await recording[0]
    assert.equal(statSync(path).size, size + '+first\n+second\n'.length)
    await recording[1]
    using next = openSentJournalFile(path, 'boot-1')
    assert.deepEqual(
      ['first', 'second', 'third'].map((id) => next.mayHaveLeft(found(id))),
      [true, true, false],
    )
  }))

test('where the machine does not name its boots, no entry is believed', () => {
  assert.equal(readBootId('/nowhere/boot_id'), null)
})
