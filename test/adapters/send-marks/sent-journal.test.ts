import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSendMarkFile, type SendMarkFile } from '../../../src/adapters/send-marks/file.ts'
import { testSentJournal } from '../../contracts/sent-journal.ts'

testSentJournal({
  async withJournal(body) {
    const folder = await mkdtemp(join(tmpdir(), 'atelier-journal-'))
    const opened: SendMarkFile[] = []
    try {
      await body({
        reopen() {
          const file = openSendMarkFile(join(folder, 'sent'), 'one-boot')
          opened.push(file)
          return file
        },
      })
    } finally {
      for (const file of opened) file[Symbol.dispose]()
      await rm(folder, { recursive: true, force: true })
    }
  },
})
