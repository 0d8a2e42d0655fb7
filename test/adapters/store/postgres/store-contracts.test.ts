import { testAssetStore } from '../../../contracts/asset-store.ts'
import { postgresOpener } from './temporary-store.ts'

testAssetStore(postgresOpener)
