import { testJobStoreModel } from '../../../contracts/job-store-model.ts'
import { sqliteOpener } from './temporary-store.ts'

testJobStoreModel(sqliteOpener)
