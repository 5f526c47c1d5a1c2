package etcd_test
import ("testing";"fmt";"time"
"github.com/stretchr/testify/require"
clientv3 "go.etcd.io/etcd/client/v3"
"go.uber.org/zap"
"github.com/elasticron/elasticron/internal/testbed"
"github.com/elasticron/elasticron/registry"
"sync";"sync/atomic"
"github.com/elasticron/elasticron/registry/etcd"
)
func TestZZ(t *testing.T){
 bed:=testbed.StartEtcd(t,testbed.Options{})
 reg,err:=etcd.Open(t.Context(),etcd.Config{Endpoints:bed.Endpoints(),Namespace:"x",SessionTimeout:60*time.Second}); require.NoError(t,err); defer reg.Close()
 s,err:=reg.Open(t.Context()); require.NoError(t,err)
 raw,err:=clientv3.New(clientv3.Config{Endpoints:bed.Endpoints(),Logger:zap.NewNop()}); require.NoError(t,err); defer raw.Close()
 val:=make([]byte,64)
 for i:=range 64 { commit(t,s,registry.Create(fmt.Sprintf("/k%d",i),val)); for j:=range 10 {commit(t,s,registry.Create(fmt.Sprintf("/k%d/c%d",i,j),val))} }
 run:=func(n int,f func(w,i int) error) float64 { var ops atomic.Int64; var wg sync.WaitGroup; end:=time.Now().Add(1500*time.Millisecond); st:=time.Now()
  for w:=range n { wg.Go(func(){ for i:=0;time.Now().Before(end);i++ { if err:=f(w,i);err!=nil {t.Error(err);return}; ops.Add(1)} }) }
  wg.Wait(); return float64(ops.Load())/time.Since(st).Seconds() }
 ctx:=t.Context()
 for round:=0;round<2;round++ { for _,n:=range []int{1,16,64} {
  a:=run(n,func(w,i int) error { k:=fmt.Sprintf("/elasticron/1/k%d",w); _,err:=raw.Txn(ctx).If(clientv3.Compare(clientv3.Version(k),">",0)).Then(clientv3.OpPut(k,string(val),clientv3.WithIgnoreLease())).Commit(); return err})
  b:=run(n,func(w,i int) error { _,err:=s.Commit(ctx,registry.Set(fmt.Sprintf("/k%d",w),val,-1)); return err})
  c:=run(n,func(w,i int) error { var cs []clientv3.Cmp; var os []clientv3.Op; for j:=range 10 {k:=fmt.Sprintf("/elasticron/2/k%d/c%d",w,j); cs=append(cs,clientv3.Compare(clientv3.Version(k),">",0)); os=append(os,clientv3.OpPut(k,string(val),clientv3.WithIgnoreLease()))}; _,err:=raw.Txn(ctx).If(cs...).Then(os...).Commit(); return err})
  d:=run(n,func(w,i int) error { var os []registry.Op; for j:=range 10 {os=append(os,registry.Set(fmt.Sprintf("/k%d/c%d",w,j),val,-1))}; _,err:=s.Commit(ctx,os...); return err})
  e:=run(n,func(w,i int) error { _,err:=raw.Get(ctx,fmt.Sprintf("/elasticron/1/k%d",w)); return err})
  f:=run(n,func(w,i int) error { _,err:=s.Get(ctx,fmt.Sprintf("/k%d",w)); return err})
  fmt.Printf("inflight %d: set raw %.0f ours %.0f (%.0f%%) | 10 sets raw %.0f ours %.0f (%.0f%%) | get raw %.0f ours %.0f (%.0f%%)\n",n,a,b,100*b/a,c,d,100*d/c,e,f,100*f/e)
 }}
}
