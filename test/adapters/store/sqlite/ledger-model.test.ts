import { testLedgerModel } from '../../../contracts/credits/ledger-model.ts'
import { inlineOpener } from './inline-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testLedgerModel(inlineOpener, { runs: 2500 })
testLedgerModel(sqliteOpener, { runs: 30 })
