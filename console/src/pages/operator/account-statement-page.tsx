/** The statement of a month of one account, as the account itself sees it. */
import { getAccountStatement, getAccountStatementCsv } from '../../api/admin-money.ts'
import { Words } from '../../components/text.tsx'
import { hrefOf } from '../../routes.ts'
import { OneMonth } from '../account/statement-page.tsx'

export function AccountStatementPage({ id = '' }: Readonly<Record<string, string>>) {
  const path = `/operator/accounts/${encodeURIComponent(id)}`
  return (
    <section class="page statement">
      <a class="dim back" href={hrefOf(path)}>
        ← <Words text={id} />
      </a>
      <h1>Statement</h1>
      <OneMonth
        owner={id}
        path={`${path}/statement`}
        read={getAccountStatement.bind(null, id)}
        readCsv={getAccountStatementCsv.bind(null, id)}
      />
    </section>
  )
}
