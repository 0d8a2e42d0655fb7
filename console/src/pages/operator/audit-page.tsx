/** Who changed what, newest first. */
import { type AuditRecord, listAudit } from '../../api/admin.ts'
import { EmptyState } from '../../components/state.tsx'
import { LoadedTable, type PlainColumn } from '../../components/table/plain-table.tsx'
import { Moment, Words } from '../../components/text.tsx'
import { useResource } from '../../state/resource.ts'
import { OperatorPage } from './operator-page.tsx'

const COLUMNS: readonly PlainColumn<AuditRecord>[] = [
  { label: 'When', cell: ({ at }) => <Moment at={at} /> },
  { label: 'Who', cell: ({ actor }) => <Words text={actor} /> },
  { label: 'What', cell: ({ action }) => <Words text={action} /> },
  { label: 'Of', cell: ({ subject }) => <Words text={subject} /> },
  { label: 'Outcome', cell: ({ outcome }) => <Words text={outcome} /> },
]

export function AuditPage() {
  const resource = useResource('operator audit', listAudit)
  return (
    <OperatorPage here="audit" title="Audit">
      <LoadedTable
        label="Changes"
        columns={COLUMNS}
        resource={resource}
        rowsOf={({ records }) => records}
        keyOf={({ seq }) => seq}
        empty={<EmptyState title="Nothing was changed yet" />}
      />
    </OperatorPage>
  )
}
