import { testLedgerModel } from '../../../contracts/credits/ledger-model.ts'
import { inlineOpener } from './inline-store.ts'
import { sqliteOpener } from './temporary-store.ts'

// Each run of the tests draws others; a hundred take a second, so a long search is a matter of minutes.
const RUNS = Number(process.env['ATELIER_TEST_LEDGER_RUNS'] ?? 400)

testLedgerModel(inlineOpener, { runs: RUNS })
testLedgerModel(sqliteOpener, { runs: 30 })
