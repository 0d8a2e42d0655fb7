import { testLedgerModel } from '../../../contracts/credits/ledger-model.ts'
import { drawnCases } from '../../../support/drawn-cases.ts'
import { inlineOpener } from './inline-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testLedgerModel(inlineOpener, { runs: drawnCases(400) })
testLedgerModel(sqliteOpener, { runs: 30 })
