/** Who changed what, newest first. */
import { listAudit } from '../../api/admin.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { Moment } from '../../components/figures.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { TableWrap } from '../../components/table/table-wrap.tsx'
import { Words } from '../../components/words.tsx'
import { useResource } from '../../state/resource.ts'
import { OperatorTabs } from './operator-tabs.tsx'

export function AuditPage() {
  const resource = useResource('operator audit', listAudit)
  return (
    <section class="page audit">
      <h1>Audit</h1>
      <OperatorTabs here="audit" />
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {({ records }) =>
          records.length === 0 ? (
            <EmptyState title="Nothing was changed yet" />
          ) : (
            <TableWrap label="Changes">
              <table class="plain-table">
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Who</th>
                    <th scope="col">What</th>
                    <th scope="col">Of</th>
                    <th scope="col">Outcome</th>
                  </tr>
                </thead>
                <tbody>
                  {records.map((record) => (
                    <tr key={record.seq}>
                      <td>
                        <Moment at={record.at} />
                      </td>
                      <td>
                        <Words text={record.actor} />
                      </td>
                      <td>
                        <Words text={record.action} />
                      </td>
                      <td>
                        <Words text={record.subject} />
                      </td>
                      <td>
                        <Words text={record.outcome} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </TableWrap>
          )
        }
      </Loaded>
    </section>
  )
}
