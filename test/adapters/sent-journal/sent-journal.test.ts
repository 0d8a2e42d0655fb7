import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSentJournalFile, type SentJournalFile } from '../../../src/adapters/sent-journal/file.ts'
import { testSentJournal } from '../../contracts/calls/sent-journal.ts'

testSentJournal({
  async withJournal(body) {
    const folder = await mkdtemp(join(tmpdir(), 'atelier-journal-'))
    const opened: SentJournalFile[] = []
    try {
      await body({
        reopen() {
          const file = openSentJournalFile(join(folder, 'sent'), 'one-boot')
          opened.push(file)
          return file
        },
        letIn: async (name) => ({ seq: 1, id: name, accountId: 'account', owner: 'node', fence: 1 }),
        takenOver: async (ref) => ({ ref, isSent: false }),
      })
    } finally {
      for (const file of opened) file[Symbol.dispose]()
      await rm(folder, { recursive: true, force: true })
    }
  },
})
