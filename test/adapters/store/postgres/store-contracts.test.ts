import { testAssetStore } from '../../../contracts/assets/asset-store.ts'
import { postgresOpener } from './temporary-store.ts'

testAssetStore(postgresOpener)
