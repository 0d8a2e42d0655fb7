import { testJobStoreModel } from '../../../contracts/job-store/job-store-model.ts'
import { sqliteOpener } from './temporary-store.ts'

testJobStoreModel(sqliteOpener)
