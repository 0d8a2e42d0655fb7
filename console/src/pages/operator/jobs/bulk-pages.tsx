/** What operators asked of many jobs. */
import { hrefOf } from '../../../routes.ts'
import { BulkList, OneBulk } from '../../bulk/bulk-pages.tsx'
import { OperatorPage } from '../operator-page.tsx'

export function AllBulkPage() {
  return (
    <OperatorPage here="jobs" title="Many jobs of all accounts">
      <BulkList scope="all" />
    </OperatorPage>
  )
}

export function AnyBulkPage({ id = '' }: Readonly<Record<string, string>>) {
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/operator/bulk')}>
        ← Many jobs
      </a>
      <OneBulk scope="all" id={id} />
    </section>
  )
}
