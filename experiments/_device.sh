# side by side on 16 cores; rows come back through $OUT
export JAX_PLATFORMS=cpu PYTHONPATH=src:experiments OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 AGGREGAUSS_DATA=shared/data
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1 TQDM_DISABLE=1
end=$(( $(date +%s) + $2 ))
for i in $(seq 0 15); do
  AGGREGAUSS_SHARE=$i/16 taskset -c $i timeout $2 python experiments/$1.py $3 > $OUT/log$i 2>&1 &
done
wait
cp experiments/rows/$1.csv $OUT/
