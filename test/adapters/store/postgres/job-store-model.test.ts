import { testJobStoreModel } from '../../../contracts/job-store/job-store-model.ts'
import { postgresOpener } from './temporary-store.ts'

testJobStoreModel(postgresOpener)
