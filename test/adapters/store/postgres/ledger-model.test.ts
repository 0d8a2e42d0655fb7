import { testLedgerModel } from '../../../contracts/credits/ledger-model.ts'
import { postgresOpener } from './temporary-store.ts'

testLedgerModel(postgresOpener, { runs: 25 })
