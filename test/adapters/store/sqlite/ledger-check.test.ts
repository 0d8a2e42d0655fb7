import { testLedgerCheck } from '../../../contracts/credits/ledger-check.ts'
import { openInlineStore } from './inline-store.ts'

testLedgerCheck({
  async open() {
    const { store, database, close } = await openInlineStore()
    return { store, exec: async (sql) => database.exec(sql), close }
  },
  unlock: 'DROP TRIGGER ledger_entry_no_update; DROP TRIGGER ledger_entry_no_delete',
})
