import type { AssetStore } from '../../../../domain/assets/asset-store.ts'
import type { StoreParts } from './store-parts.ts'
import { unwritten } from './unwritten.ts'

export const createAssetStore = (_: StoreParts) => unwritten<AssetStore>('assets')
