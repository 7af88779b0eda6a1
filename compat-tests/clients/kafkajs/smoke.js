// The smoke job with kafkajs: gzip is its own, snappy comes from its authors' plug-in.
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const RECORDS = 10000
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
const { BOOTSTRAP, TOPIC, GROUP } = process.env
const kafka = new Kafka({ clientId: 'smoke', brokers: [BOOTSTRAP], logLevel: logLevel.ERROR })

function check(ok, what) { if (!ok) throw new Error(what) }

async function until(what, seconds, condition) {
  const deadline = Date.now() + seconds * 1000
  while (!(await condition())) {
    check(Date.now() < deadline, `gave up after ${seconds} s: ${what()}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

async function produce(codec, count, prefix) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (let i = 0; i < count; i += 500) {
    const messages = []
    for (let j = i; j < Math.min(i + 500, count); j++) messages.push({ key: `k${j}`, value: `${prefix}-${j}` })
    await producer.send({ topic: TOPIC, acks: -1, compression: CODECS[codec], messages })
  }
  await producer.disconnect()
}

async function consumer(name, seen, assigned) {
  const c = kafka.consumer({ groupId: GROUP, sessionTimeout: 10000, heartbeatInterval: 500, maxWaitTimeInMs: 200 })
  await c.connect()
  c.on(c.events.GROUP_JOIN, e => { assigned[name] = (e.payload.memberAssignment[TOPIC] || []).length })
  await c.subscribe({ topic: TOPIC, fromBeginning: true })
  await c.run({ eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
    for (const m of batch.messages) { seen.add(m.value.toString()); resolveOffset(m.offset) }
    await heartbeat()
  } })
  return c
}

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  check(await admin.createTopics({ waitForLeaders: true, topics: [{ topic: TOPIC, numPartitions: 6, replicationFactor: 1 }] }), 'not created')
  console.log('created')
  for (const codec of Object.keys(CODECS)) await produce(codec, RECORDS, codec)
  console.log('produced with', Object.keys(CODECS).join(','))

  const total = RECORDS * Object.keys(CODECS).length
  const seen = new Set(), assigned = {}
  const first = await consumer('first', seen, assigned)
  await until(() => `${seen.size} of ${total}`, 60, () => seen.size > total / 3)
  const second = await consumer('second', seen, assigned)
  await until(() => `${seen.size} of ${total}, assigned ${JSON.stringify(assigned)}`, 120, () => seen.size === total && assigned.first === 3 && assigned.second === 3)
  await first.disconnect()
  await second.disconnect()
  for (const codec of Object.keys(CODECS)) for (let i = 0; i < RECORDS; i++) check(seen.has(`${codec}-${i}`), `lost ${codec}-${i}`)
  console.log('consumed in two members')

  await produce('none', 100, 'resumed')
  const resumed = new Set()
  const third = await consumer('third', resumed, assigned)
  await until(() => `${resumed.size} of 100`, 30, () => resumed.size >= 100)
  await third.disconnect()
  for (const value of resumed) check(value.startsWith('resumed-'), `an old record came back: ${value}`)
  for (const { offset } of await admin.fetchTopicOffsetsByTimestamp(TOPIC, 0)) check(offset === '0', `time 0 is offset ${offset}`)
  const ends = await admin.fetchTopicOffsets(TOPIC)
  check(ends.reduce((sum, p) => sum + Number(p.high), 0) === total + 100, `ends: ${JSON.stringify(ends)}`)
  console.log('resumed, listed offsets')

  await admin.deleteTopics({ topics: [TOPIC] })
  await until(() => 'the topic is still listed', 10, async () => !(await admin.listTopics()).includes(TOPIC))
  await admin.disconnect()
  console.log('OK')
}

main().catch(e => { console.error(e); process.exit(1) })
