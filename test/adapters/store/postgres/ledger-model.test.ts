import { testLedgerModel } from '../../../contracts/ledger-model.ts'
import { postgresOpener } from './temporary-store.ts'

testLedgerModel(postgresOpener, { runs: 25 })
