import { testAccountStore } from '../../../contracts/account-store.ts'
import { testAssetStore } from '../../../contracts/asset-store.ts'
import { testIdempotencyStore } from '../../../contracts/idempotency-store.ts'
import { sqliteOpener } from './temporary-store.ts'

testAssetStore(sqliteOpener)
testAccountStore(sqliteOpener)
testIdempotencyStore(sqliteOpener)
