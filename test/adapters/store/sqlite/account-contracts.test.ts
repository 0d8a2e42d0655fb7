import { testAccountDirectory } from '../../../contracts/account-directory.ts'
import { testAccountStore } from '../../../contracts/account-store.ts'
import { testAuditStore } from '../../../contracts/audit-store.ts'
import { testCharges } from '../../../contracts/charges.ts'
import { testKeyStore } from '../../../contracts/key-store.ts'
import { testLedgerStore } from '../../../contracts/ledger-store.ts'
import { testLimitStore } from '../../../contracts/limit-store.ts'
import { testUserFileStore } from '../../../contracts/user-file-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testAccountStore(sqliteOpener)
testAccountDirectory(sqliteOpener)
testKeyStore(sqliteOpener)
testUserFileStore(sqliteOpener)
testLedgerStore(sqliteOpener)
testCharges(sqliteOpener, { runs: 25 })
testLimitStore(sqliteOpener)
testAuditStore(sqliteOpener)
